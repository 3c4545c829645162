"""Jupyter's own tests of kernels, over kernelspecs that `mainstay kernel register` wrote."""

import unittest

import jupyter_kernel_test


class Fsharp(jupyter_kernel_test.KernelTests):
    kernel_name = "mainstay-fsharp"
    language_name = "fsharp"
    file_extension = ".fsx"
    code_hello_world = 'printfn "hello, world"'
    code_stderr = 'eprintfn "oops"'
    completion_samples = [{"text": "Seq.iteri", "matches": {"iteri", "iteri2"}}]
    complete_code_samples = ["1 + 1", "let x = 1", "let f x =\n    x\n"]
    incomplete_code_samples = ["let f x =", "[ 1;", "match 1 with"]
    code_generate_error = 'failwith "no luck"'
    code_execute_result = [{"code": "6 * 7", "result": "42"}, {"code": '"a" + "b"', "result": '"ab"'}]
    code_display_data = [{"code": 'Mainstay.display (Mainstay.html "<b>1</b>")', "mime": "text/html"}]
    code_history_pattern = "6 ? 7*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "List.map"


class Python(jupyter_kernel_test.KernelTests):
    kernel_name = "mainstay-python3"
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('oops', file=sys.stderr)"
    completion_samples = [{"text": "zi", "matches": {"zip"}}]
    complete_code_samples = ["1", "def f(x):\n  return x*2\n\n\n"]
    incomplete_code_samples = ["def f(x):", "print('''hello"]
    invalid_code_samples = ["import = 7q"]
    code_generate_error = "raise ValueError('no luck')"
    code_execute_result = [{"code": "1+2+3", "result": "6"}, {"code": "[n*n for n in range(1, 4)]", "result": "[1, 4, 9]"}]
    code_display_data = [
        {"code": "from IPython.display import HTML, display\ndisplay(HTML('<b>test</b>'))", "mime": "text/html"},
        {"code": "from IPython.display import Math, display\ndisplay(Math('\\\\frac{1}{2}'))", "mime": "text/latex"},
    ]
    code_history_pattern = "1?2*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "zip"


if __name__ == "__main__":
    unittest.main()
