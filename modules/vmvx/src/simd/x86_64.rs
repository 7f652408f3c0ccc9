//! Kernels for x86-64 processors with more than SSE2: the portable code, compiled for AVX2 and FMA.
#![allow(unsafe_code)]

use super::{Kernels, accumulate};

/// Kernels for this processor, if it has AVX2 and FMA.
pub(super) fn detect() -> Option<Kernels> {
    let found = std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma");
    found.then_some(Kernels::Eight { wide: wide_checked, narrow: narrow_checked })
}

/// Given out by [`detect`] alone.
fn wide_checked(left: &[f32], right: &[f32], sums: &mut [[f32; 16]; 6]) {
    // SAFETY: `detect` found the features that the function is compiled for, and nobody else can name this function.
    unsafe { wide(left, right, sums) }
}

/// Given out by [`detect`] alone.
fn narrow_checked(left: &[f32], right: &[f32], sums: &mut [[f32; 32]; 1]) {
    // SAFETY: `detect` found the features that the function is compiled for, and nobody else can name this function.
    unsafe { narrow(left, right, sums) }
}

#[target_feature(enable = "avx2,fma")]
fn wide(left: &[f32], right: &[f32], sums: &mut [[f32; 16]; 6]) {
    accumulate::<6, 16, true>(left, right, sums);
}

#[target_feature(enable = "avx2,fma")]
fn narrow(left: &[f32], right: &[f32], sums: &mut [[f32; 32]; 1]) {
    accumulate::<1, 32, true>(left, right, sums);
}
