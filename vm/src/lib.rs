//! Checked module to running program: translation, interpreter, values, linking and the embedding API.
