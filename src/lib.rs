//! swath
