// Shared by the two files of `separate`.
#pragma once

extern __device__ int applied;
__device__ int scaled(int value);
__global__ void apply(int* values, int count);
