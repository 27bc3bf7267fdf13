// Capturing streams into graphs.
#include "intercept/runtime/convert.h"
#include "intercept/runtime/rows.h"

using namespace vgpu::runtime;

static_assert(static_cast<int>(cudaStreamCaptureModeRelaxed) == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(static_cast<int>(cudaStreamCaptureStatusInvalidated) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);

RUNTIME_STREAM(cudaStreamBeginCapture, (cudaStream_t stream, cudaStreamCaptureMode mode),
               cuStreamBeginCapture(on(stream), static_cast<CUstreamCaptureMode>(mode)))
RUNTIME_STREAM(cudaStreamBeginCaptureToGraph,
               (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                const cudaGraphEdgeData* edges, size_t count, cudaStreamCaptureMode mode),
               cuStreamBeginCaptureToGraph(on(stream), graph, dependencies, same<CUgraphEdgeData>(edges), count,
                                           static_cast<CUstreamCaptureMode>(mode)))
RUNTIME_STREAM(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t* graph), cuStreamEndCapture(on(stream), graph))
RUNTIME_STREAM(cudaStreamIsCapturing, (cudaStream_t stream, cudaStreamCaptureStatus* status),
               cuStreamIsCapturing(on(stream), same<CUstreamCaptureStatus>(status)))
RUNTIME_STREAM(cudaStreamGetCaptureInfo,
               (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
                const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges, size_t* count),
               cuStreamGetCaptureInfo(on(stream), same<CUstreamCaptureStatus>(status), same<cuuint64_t>(id), graph,
                                      dependencies, same<const CUgraphEdgeData*>(edges), count))
RUNTIME_STREAM(cudaStreamUpdateCaptureDependencies,
               (cudaStream_t stream, cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges, size_t count,
                unsigned flags),
               cuStreamUpdateCaptureDependencies(on(stream), dependencies, same<CUgraphEdgeData>(edges), count, flags))
RUNTIME(cudaThreadExchangeStreamCaptureMode, (cudaStreamCaptureMode * mode),
        cuThreadExchangeStreamCaptureMode(same<CUstreamCaptureMode>(mode)))
