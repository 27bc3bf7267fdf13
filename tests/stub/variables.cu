// Source of the images for the image tests: variables of every kind, and kernels that print or do not.
__device__ int counter;
static __device__ double weights[4] = {1, 2, 3, 4};
__constant__ float scale = 2;
__device__ int never[1000];
extern "C" __global__ void use(double* out) {
  static __device__ int calls;
  __shared__ int notAVariable[32];
  notAVariable[threadIdx.x % 32] = calls++;
  __syncthreads();
  *out = counter + weights[threadIdx.x % 4] * scale + never[threadIdx.x] + notAVariable[0];
#ifdef PRINTS
  if (*out < 0) printf("%f", *out);
#endif
#ifdef ALLOCATES
  if (*out > 9) *out = *static_cast<double*>(malloc(8));
#endif
}
