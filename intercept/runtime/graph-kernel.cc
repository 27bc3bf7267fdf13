// Kernel nodes.
#include "intercept/runtime/graph-node.h"

using namespace vgpu::runtime;

static_assert(static_cast<int>(cudaKernelNodeAttributePriority) == CU_KERNEL_NODE_ATTRIBUTE_PRIORITY);

namespace vgpu::runtime {

cudaError_t toDriver(const cudaKernelNodeParams* from, CUDA_KERNEL_NODE_PARAMS& to) {
  if (from == nullptr) return cudaErrorInvalidValue;
  LoadedFunction* kernel;
  if (cudaError_t error = getLoaded(from->func, kernel); error != cudaSuccess) return error;
  to = {};
  to.func = kernel->function;
  to.gridDimX = from->gridDim.x, to.gridDimY = from->gridDim.y, to.gridDimZ = from->gridDim.z;
  to.blockDimX = from->blockDim.x, to.blockDimY = from->blockDim.y, to.blockDimZ = from->blockDim.z;
  to.sharedMemBytes = from->sharedMemBytes;
  to.kernelParams = from->kernelParams;
  to.extra = from->extra;
  return cudaSuccess;
}

namespace {

/// The handle by which the program knows the kernel: its host function, or the library API's kernel.
void* nameOf(const CUDA_KERNEL_NODE_PARAMS& from) {
  Function* function = from.func != nullptr ? findByHandle(from.func) : findFunction(from.kern);
  if (function == nullptr) return from.func;
  return function->host != nullptr ? const_cast<void*>(function->host) : function->kernel;
}

CUresult readParameters(cudaGraphNode_t node, cudaKernelNodeParams* to) {
  CUDA_KERNEL_NODE_PARAMS from;
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult result = cuGraphKernelNodeGetParams(node, &from); result != CUDA_SUCCESS) return result;
  *to = {nameOf(from),
         dim3(from.gridDimX, from.gridDimY, from.gridDimZ),
         dim3(from.blockDimX, from.blockDimY, from.blockDimZ),
         from.sharedMemBytes,
         from.kernelParams,
         from.extra};
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace vgpu::runtime

RUNTIME(cudaGraphAddKernelNode,
        (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
         const cudaKernelNodeParams* parameters),
        withParameters<CUDA_KERNEL_NODE_PARAMS>(parameters, [&](const auto& p) {
          return cuGraphAddKernelNode(node, graph, dependencies, count, &p);
        }))
RUNTIME(cudaGraphKernelNodeGetParams, (cudaGraphNode_t node, cudaKernelNodeParams* parameters),
        readParameters(node, parameters))
RUNTIME(cudaGraphKernelNodeSetParams, (cudaGraphNode_t node, const cudaKernelNodeParams* parameters),
        withParameters<CUDA_KERNEL_NODE_PARAMS>(parameters,
                                                [&](const auto& p) { return cuGraphKernelNodeSetParams(node, &p); }))
RUNTIME(cudaGraphExecKernelNodeSetParams,
        (cudaGraphExec_t executable, cudaGraphNode_t node, const cudaKernelNodeParams* parameters),
        withParameters<CUDA_KERNEL_NODE_PARAMS>(parameters, [&](const auto& p) {
          return cuGraphExecKernelNodeSetParams(executable, node, &p);
        }))
RUNTIME(cudaGraphKernelNodeCopyAttributes, (cudaGraphNode_t to, cudaGraphNode_t from),
        cuGraphKernelNodeCopyAttributes(to, from))
RUNTIME(cudaGraphKernelNodeGetAttribute,
        (cudaGraphNode_t node, cudaKernelNodeAttrID attribute, cudaKernelNodeAttrValue* value),
        cuGraphKernelNodeGetAttribute(node, static_cast<CUkernelNodeAttrID>(attribute),
                                      same<CUkernelNodeAttrValue>(value)))
RUNTIME(cudaGraphKernelNodeSetAttribute,
        (cudaGraphNode_t node, cudaKernelNodeAttrID attribute, const cudaKernelNodeAttrValue* value),
        cuGraphKernelNodeSetAttribute(node, static_cast<CUkernelNodeAttrID>(attribute),
                                      same<CUkernelNodeAttrValue>(value)))
