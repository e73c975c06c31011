//! Layers and losses.
