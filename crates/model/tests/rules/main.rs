//! The rules of the model, over arbitrary inputs, and the shape of what it stores.

mod decide;
mod evolve;
mod support;
mod wire;
