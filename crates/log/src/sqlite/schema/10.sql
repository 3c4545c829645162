-- Which notices of the session's runner are taken: the runner and the number of the last; absent where nobody said so yet.
ALTER TABLE head ADD COLUMN runner BLOB;
ALTER TABLE head ADD COLUMN notice INTEGER;
