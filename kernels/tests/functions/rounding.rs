use super::functions1;

functions1! {}
