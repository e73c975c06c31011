//! Sets of elements, the most frequent ones, reductions at indices and without NaN, scans and histograms that are
//! composed of other ops: values of NumPy 2 and PyTorch 2, definitions by plain loops, edges and errors.

mod edges;
mod loops;
mod values;
