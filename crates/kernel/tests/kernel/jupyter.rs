//! Real Jupyter kernels, through the runner that the engine is given. `MAINSTAY_TEST_JUPYTER` names an environment with their kernelspecs.

mod behaviour;
mod python;
mod session;
mod snapshot;
mod table;
mod tongue;
