//! Order, quantiles, searches, counts and random samples: values of NumPy 2 and PyTorch 2, definitions by plain
//! loops on random data with ties and special values, and the statistics of samples.

mod brute_force;
mod samples;
mod values;
