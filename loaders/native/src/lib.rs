//! Loader of code that the process links itself: system libraries and kernels registered in-process.
