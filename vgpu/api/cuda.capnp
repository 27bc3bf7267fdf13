@0xf3c59a1b7e204d68;
# CUDA as data: every driver entry is a row. A method's parameters are its frame, its results the answer. What the headers say of
# an entry is in driver.entries, by its symbol.
# Ordinals are the frame's method number: append only, never reuse.

using Cxx = import "/capnp/c++.capnp";
using A = import "annotations.capnp";
$Cxx.namespace("vgpu::api");

struct DeviceDescription {
  name @0 :Text;
  uuid @1 :Data;
  pciBusId @2 :Text;
  totalBytes @3 :UInt64;
  attributes @4 :List(Int32);   # by CUdevice_attribute; what the driver does not know is 0
  leastPriority @5 :Int32;
  greatestPriority @6 :Int32;
}

interface Cuda {
  # ------------------------------------------------------------------ the session's own
  describe @0 (device :UInt32) -> (count :UInt32, driverVersion :Int32, device :DeviceDescription)
      $A.route(call) $A.replay(query) $A.noWork $A.workerByHand("gathers many driver calls into one answer");
  lease @1 (address :UInt64 $A.creates(lease), bytes :UInt64) -> ()
      $A.route(call) $A.replay(build) $A.noWork $A.workerByHand("maps physical memory at the arena's address");
  endLease @2 (address :UInt64 $A.destroys(lease)) -> ()
      $A.route(call) $A.replay(build) $A.noWork $A.workerByHand("unmaps it");
  hostLease @3 (address :UInt64 $A.creates(hostLease), bytes :UInt64) -> ()
      $A.route(call) $A.replay(build) $A.noWork $A.workerByHand("registers a part of the shared host arena");
  endHostLease @4 (address :UInt64 $A.destroys(hostLease)) -> ()
      $A.route(call) $A.replay(build) $A.noWork $A.workerByHand("gives its pages back too");
  blobWrite @5 (blob :UInt64, offset :UInt64, totalBytes :UInt64, slab :UInt32, bytes :UInt32) -> ()
      $A.route(post) $A.replay(query) $A.noWork $A.workerByHand("the worker keeps blobs; a snapshot stores those of modules");
  blobDrop @6 (blob :UInt64) -> ()
      $A.route(post) $A.replay(query) $A.noWork $A.workerByHand("as blobWrite");

  # ------------------------------------------------------------------ devices and contexts
  init @7 () $A.entry("cuInit") $A.route(local) $A.reason("opens the session");
  driverGetVersion @8 () $A.entry("cuDriverGetVersion") $A.route(local) $A.reason("described once");
  deviceGet @9 () $A.entry("cuDeviceGet") $A.route(local) $A.reason("described once");
  deviceGetCount @10 () $A.entry("cuDeviceGetCount") $A.route(local) $A.reason("described once");
  deviceGetName @11 () $A.entry("cuDeviceGetName") $A.route(local) $A.reason("described once");
  deviceGetUuid @12 () $A.entry("cuDeviceGetUuid_v2") $A.route(local)
      $A.reason("the virtual GPU keeps its UUID wherever it lands");
  deviceTotalMem @13 () $A.entry("cuDeviceTotalMem_v2") $A.route(local) $A.reason("described once");
  deviceGetAttribute @14 () $A.entry("cuDeviceGetAttribute") $A.route(local) $A.reason("described once");
  deviceGetPciBusId @15 () $A.entry("cuDeviceGetPCIBusId") $A.route(local) $A.reason("described once");
  deviceGetByPciBusId @16 () $A.entry("cuDeviceGetByPCIBusId") $A.route(local) $A.reason("described once");
  primaryCtxRetain @17 () $A.entry("cuDevicePrimaryCtxRetain") $A.route(local)
      $A.reason("the worker has made every device's context already");
  primaryCtxRelease @18 () $A.entry("cuDevicePrimaryCtxRelease_v2") $A.route(local) $A.reason("counts the retains");
  primaryCtxReset @19 () $A.entry("cuDevicePrimaryCtxReset_v2") $A.route(local)
      $A.reason("drops the device's objects one by one; contextReset where a fault has ended the context");
  primaryCtxGetState @20 () $A.entry("cuDevicePrimaryCtxGetState") $A.route(local) $A.reason("counts the retains");
  primaryCtxSetFlags @21 () $A.entry("cuDevicePrimaryCtxSetFlags_v2") $A.route(local)
      $A.reason("scheduling flags are ours: the program waits on shared memory");
  ctxCreate @22 () $A.entry("cuCtxCreate_v4") $A.route(local)
      $A.reason("a session has one context a device; others are names for it");
  ctxCreateV2 @23 () $A.entry("cuCtxCreate_v2") $A.route(local) $A.reason("as ctxCreate");
  ctxDestroy @24 () $A.entry("cuCtxDestroy_v2") $A.route(local) $A.reason("as ctxCreate");
  ctxSetCurrent @25 () $A.entry("cuCtxSetCurrent") $A.route(local) $A.reason("state of the thread");
  ctxGetCurrent @26 () $A.entry("cuCtxGetCurrent") $A.route(local) $A.reason("state of the thread");
  ctxPushCurrent @27 () $A.entry("cuCtxPushCurrent_v2") $A.route(local) $A.reason("state of the thread");
  ctxPopCurrent @28 () $A.entry("cuCtxPopCurrent_v2") $A.route(local) $A.reason("state of the thread");
  ctxGetDevice @29 () $A.entry("cuCtxGetDevice") $A.route(local) $A.reason("state of the thread");
  ctxGetApiVersion @30 () $A.entry("cuCtxGetApiVersion") $A.route(local) $A.reason("described once");
  ctxGetFlags @31 () $A.entry("cuCtxGetFlags") $A.route(local) $A.reason("as primaryCtxSetFlags");
  ctxGetStreamPriorityRange @32 () $A.entry("cuCtxGetStreamPriorityRange") $A.route(local) $A.reason("described once");
  ctxSynchronize @33 () -> () $A.entry("cuCtxSynchronize") $A.route(signal) $A.replay(query) $A.noWork
      $A.clientByHand("nothing outstanding is answered at once")
      $A.workerByHand("the GPU answers, after every stream of the device");
  ctxGetLimit @34 (limit :UInt32) -> (pvalue :UInt64) $A.entry("cuCtxGetLimit") $A.route(call) $A.replay(query)
      $A.noWork;
  ctxSetLimit @35 (limit :UInt32, value :UInt64) -> () $A.entry("cuCtxSetLimit") $A.route(call) $A.replay(build)
      $A.noWork;
  ctxGetCacheConfig @36 () -> (pconfig :UInt32) $A.entry("cuCtxGetCacheConfig") $A.route(call) $A.replay(query)
      $A.noWork;
  ctxSetCacheConfig @37 (config :UInt32) -> () $A.entry("cuCtxSetCacheConfig") $A.route(call) $A.replay(build) $A.noWork
      $A.clientByHand("changes the occupancy of every kernel");

  # ------------------------------------------------------------------ modules and functions
  moduleLoad @38 (module :UInt64 $A.creates(module), blob :UInt64) -> (log :Text, missing :Bool, prints :Bool)   # missing: send it (again)
      $A.entry("cuModuleLoadData") $A.route(call) $A.replay(build) $A.noWork
      $A.clientByHand("the image travels as a blob") $A.workerByHand("the image is a blob; the JIT's log comes back");
  moduleLoadEx @39 () $A.entry("cuModuleLoadDataEx") $A.route(local) $A.reason("moduleLoad with options");
  moduleLoadFat @40 () $A.entry("cuModuleLoadFatBinary") $A.route(local) $A.reason("moduleLoad");
  moduleLoadFile @41 () $A.entry("cuModuleLoad") $A.route(local) $A.reason("reads the file, then moduleLoad");
  moduleUnload @42 (hmod :UInt64 $A.destroys(module)) -> () $A.entry("cuModuleUnload") $A.route(post) $A.replay(build)
      $A.noWork $A.clientByHand("the module's functions and variables end with it, and its blob")
      $A.workerByHand("as above");
  moduleFunction @43 (function :UInt64 $A.creates(function), module :UInt64 $A.uses(module) $A.parent, name :Text)
      -> (attributes :List(Int32), offsets :List(UInt32), sizes :List(UInt32), known :UInt64)   # as funcAttributes
      $A.entry("cuModuleGetFunction") $A.route(call) $A.replay(build) $A.noWork
      $A.clientByHand("one handle a name") $A.workerByHand("brings what a launch must know in one answer");
  moduleVariable @44 (variable :UInt64 $A.creates(variable), module :UInt64 $A.uses(module) $A.parent, name :Text) ->
      (address :UInt64, bytes :UInt64) $A.entry("cuModuleGetGlobal_v2") $A.route(call) $A.replay(build) $A.noWork
      $A.clientByHand("the list keeps the address, for the comparison at restore")
      $A.workerByHand("a variable has no handle of the driver's");
  moduleGetLoadingMode @45 () $A.entry("cuModuleGetLoadingMode") $A.route(local)
      $A.reason("modules are loaded at once");
  funcGetAttribute @46 (attrib :Int32, hfunc :UInt64 $A.uses(function)) -> (pi :Int32) $A.entry("cuFuncGetAttribute")
      $A.route(call) $A.replay(query) $A.noWork
      $A.clientByHand("known from moduleFunction or funcAttributes, but for what this driver does not know");
  funcSetAttribute @47 (hfunc :UInt64 $A.changes(function), attrib :Int32, value :Int32) -> ()
      $A.entry("cuFuncSetAttribute") $A.route(call) $A.replay(build) $A.noWork
      $A.clientByHand("the client checks launches against what is set here");
  funcSetCacheConfig @48 (hfunc :UInt64 $A.changes(function), config :UInt32) -> () $A.entry("cuFuncSetCacheConfig")
      $A.route(call) $A.replay(build) $A.noWork;
  funcGetParamInfo @49 () $A.entry("cuFuncGetParamInfo") $A.route(local) $A.reason("told by moduleFunction");
  funcGetName @50 () $A.entry("cuFuncGetName") $A.route(local) $A.reason("told by the program");
  funcGetModule @51 () $A.entry("cuFuncGetModule") $A.route(local) $A.reason("told by the program");

  # ------------------------------------------------------------------ launches
  launchKernel @52 (function :UInt64 $A.uses(function), stream :UInt64 $A.uses(stream) $A.nullable, gridX :UInt32, gridY
      :UInt32, gridZ :UInt32, blockX :UInt32, blockY :UInt32, blockZ :UInt32, sharedBytes :UInt32, cooperative :Bool,
      parameters :Data) -> () $A.entry("cuLaunchKernel") $A.route(post) $A.replay(work)
      $A.clientByHand("parameters are gathered by the function's layout") $A.workerByHand("and spread again");
  launchKernelEx @53 () $A.entry("cuLaunchKernelEx") $A.route(local) $A.reason("launchKernel with attributes");
  launchCooperative @54 () $A.entry("cuLaunchCooperativeKernel") $A.route(local) $A.reason("launchKernel");

  # ------------------------------------------------------------------ memory
  memAlloc @55 (address :UInt64 $A.creates(memory), bytes :UInt64) -> () $A.entry("cuMemAlloc_v2") $A.route(post)
      $A.replay(build) $A.noWork $A.clientByHand("the address is chosen by the client's arena, not by the driver")
      $A.workerByHand("as above");
  memAllocPitch @56 () $A.entry("cuMemAllocPitch_v2") $A.route(local) $A.reason("memAlloc with rounded rows");
  memFree @57 (address :UInt64 $A.destroys(memory)) -> () $A.entry("cuMemFree_v2") $A.route(post) $A.replay(build)
      $A.noWork $A.clientByHand("as memAlloc") $A.workerByHand("as memAlloc");
  memGetInfo @58 () -> (free :UInt64, total :UInt64) $A.entry("cuMemGetInfo_v2") $A.route(call) $A.replay(query)
      $A.noWork $A.clientByHand("what the session has leased and not given out is free too")
      $A.driver("cuMemGetInfo_v2") $A.workerByHand("reads one device");
  memGetAddressRange @59 () $A.entry("cuMemGetAddressRange_v2") $A.route(local) $A.reason("the client's arena");
  hostAlloc @60 (address :UInt64 $A.creates(hostMemory), bytes :UInt64, flags :UInt32) -> () $A.entry("cuMemHostAlloc")
      $A.route(post) $A.replay(build) $A.noWork $A.clientByHand("pinned memory is a piece of the host arena")
      $A.workerByHand("a list entry");
  hostAllocPlain @61 () $A.entry("cuMemAllocHost_v2") $A.route(local) $A.reason("hostAlloc");
  hostFree @62 (address :UInt64 $A.destroys(hostMemory)) -> () $A.entry("cuMemFreeHost") $A.route(post) $A.replay(build)
      $A.noWork $A.clientByHand("as hostAlloc") $A.workerByHand("as hostAlloc");
  hostGetDevicePointer @63 () $A.entry("cuMemHostGetDevicePointer_v2") $A.route(local)
      $A.reason("one address on all sides");
  hostGetFlags @64 () $A.entry("cuMemHostGetFlags") $A.route(local) $A.reason("told by the program");
  memAllocManaged @65 () $A.entry("cuMemAllocManaged") $A.route(local)
      $A.reason("a piece of the host arena, which both sides see");
  pointerGetAttribute @66 () $A.entry("cuPointerGetAttribute") $A.route(local) $A.reason("the client's arenas");
  pointerGetAttributes @67 () $A.entry("cuPointerGetAttributes") $A.route(local) $A.reason("the client's arenas");

  # ------------------------------------------------------------------ copies and fills: one frame for each way bytes can go
  copyInline @68 (destination :UInt64, stream :UInt64 $A.uses(stream) $A.nullable, data :Data) -> ()
      $A.route(post) $A.replay(work) $A.workerByHand("the bytes are in the frame");
  copyFromSlab @69 (destination :UInt64, slab :UInt32, bytes :UInt32, stream :UInt64 $A.uses(stream) $A.nullable) -> ()
      $A.route(post) $A.replay(work) $A.workerByHand("the GPU frees the slab");
  copyToSlab @70 (source :UInt64, slab :UInt32, bytes :UInt32, stream :UInt64 $A.uses(stream) $A.nullable) -> ()
      $A.route(signal) $A.replay(query) $A.workerByHand("the GPU says when the bytes are there");
  copy @71 (destination :UInt64, source :UInt64, bytes :UInt64, stream :UInt64 $A.uses(stream) $A.nullable) -> ()
      $A.route(post) $A.replay(work) $A.workerByHand("both ends must be the session's: a device or the host arena");
  copyRect @72 () $A.route(local) $A.reason("no longer sent: copyBox");
  fill @73 (destination :UInt64, pitch :UInt64, value :UInt32, elementBytes :UInt32, width :UInt64, height :UInt64,
            stream :UInt64 $A.uses(stream) $A.nullable) -> ()
      $A.route(post) $A.replay(work) $A.workerByHand("one frame for twelve entries");

  # ------------------------------------------------------------------ streams
  streamCreate @74 (phStream :UInt64 $A.creates(stream), flags :UInt32, priority :Int32) -> ()
      $A.entry("cuStreamCreateWithPriority") $A.route(post) $A.replay(build) $A.noWork
      $A.clientByHand("the client remembers flags and priority");
  streamCreatePlain @75 () $A.entry("cuStreamCreate") $A.route(local) $A.reason("streamCreate");
  streamDestroy @76 (hStream :UInt64 $A.destroys(stream)) -> () $A.entry("cuStreamDestroy_v2") $A.route(post)
      $A.replay(build) $A.noWork $A.clientByHand("the built-in streams cannot be destroyed")
      $A.workerByHand("its work counts for whoever waits for the device");
  streamWaitEvent @77 (hStream :UInt64 $A.uses(stream) $A.nullable, hEvent :UInt64 $A.uses(event), Flags :UInt32) -> ()
      $A.entry("cuStreamWaitEvent") $A.route(post) $A.replay(work);
  streamSynchronize @78 (stream :UInt64 $A.uses(stream) $A.nullable) -> () $A.entry("cuStreamSynchronize")
      $A.route(signal) $A.replay(query) $A.noWork $A.clientByHand("nothing outstanding is answered at once")
      $A.workerByHand("the GPU answers");
  streamQuery @79 (hStream :UInt64 $A.uses(stream) $A.nullable) -> () $A.entry("cuStreamQuery") $A.route(call)
      $A.replay(query) $A.noWork $A.clientByHand("nothing outstanding is answered at once")
      $A.workerByHand("and takes over what kernels print");
  streamGetPriority @80 () $A.entry("cuStreamGetPriority") $A.route(local) $A.reason("told by the program");
  streamGetFlags @81 () $A.entry("cuStreamGetFlags") $A.route(local) $A.reason("told by the program");
  streamGetCtx @82 () $A.entry("cuStreamGetCtx") $A.route(local) $A.reason("told by the program");
  streamGetId @83 () $A.entry("cuStreamGetId") $A.route(local) $A.reason("the handle's number");

  # ------------------------------------------------------------------ events
  eventCreate @84 (phEvent :UInt64 $A.creates(event), Flags :UInt32) -> () $A.entry("cuEventCreate") $A.route(post)
      $A.replay(build) $A.noWork $A.clientByHand("the client keeps its flags");
  eventRecord @85 (event :UInt64 $A.uses(event), stream :UInt64 $A.uses(stream) $A.nullable, line :UInt32) -> ()
      $A.entry("cuEventRecord") $A.route(post) $A.replay(work) $A.clientByHand("the client remembers the position")
      $A.workerByHand("the GPU writes the stream's line");
  eventRecordWithFlags @86 () $A.entry("cuEventRecordWithFlags") $A.route(local) $A.reason("eventRecord");
  eventQuery @87 () $A.entry("cuEventQuery") $A.route(local) $A.reason("reads the line of its stream");
  eventSynchronize @88 () $A.entry("cuEventSynchronize") $A.route(local) $A.reason("waits on the line of its stream");
  eventElapsedTime @89 (start :UInt64 $A.uses(event), end :UInt64 $A.uses(event)) -> (milliseconds :Float32)
      $A.entry("cuEventElapsedTime_v2") $A.route(call) $A.replay(query) $A.noWork
      $A.clientByHand("one frame for two entries") $A.workerByHand("events recorded before a restore keep their times");
  eventElapsedTimeV1 @90 () $A.entry("cuEventElapsedTime") $A.route(local) $A.reason("eventElapsedTime");
  eventDestroy @91 (hEvent :UInt64 $A.destroys(event)) -> () $A.entry("cuEventDestroy_v2") $A.route(post)
      $A.replay(build) $A.noWork $A.clientByHand("and what is known of its times") $A.workerByHand("forgets its saved time");

  # ------------------------------------------------------------------ occupancy
  occupancyBlocks @92 (func :UInt64 $A.uses(function), blockSize :Int32, dynamicSMemSize :UInt64, flags :UInt32) ->
      (numBlocks :Int32) $A.entry("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags") $A.route(call)
      $A.replay(query) $A.noWork $A.clientByHand("known replies, of which occupancyTable brings many");
  occupancyBlocksPlain @93 () $A.entry("cuOccupancyMaxActiveBlocksPerMultiprocessor") $A.route(local)
      $A.reason("occupancyBlocks");
  occupancyBlockSize @94 () $A.entry("cuOccupancyMaxPotentialBlockSize") $A.route(local)
      $A.reason("a search over occupancyBlocks: it may call the program back");
  occupancyShared @95 (func :UInt64 $A.uses(function), numBlocks :Int32, blockSize :Int32) -> (dynamicSmemSize :UInt64)
      $A.entry("cuOccupancyAvailableDynamicSMemPerBlock") $A.route(call) $A.replay(query) $A.noWork
      $A.clientByHand("known replies");

  # ------------------------------------------------------------------ peers and hints
  canAccessPeer @96 () $A.entry("cuDeviceCanAccessPeer") $A.route(local)
      $A.reason("no device of a session reaches another's memory");
  p2pAttribute @97 () $A.entry("cuDeviceGetP2PAttribute") $A.route(local) $A.reason("as canAccessPeer");

  # ------------------------------------------------------------------ answered without a GPU
  getErrorName @98 () $A.entry("cuGetErrorName") $A.route(local) $A.reason("a table");
  getErrorString @99 () $A.entry("cuGetErrorString") $A.route(local) $A.reason("a table");
  getProcAddress @100 () $A.entry("cuGetProcAddress_v2") $A.route(local) $A.reason("this schema's entries");
  getExportTable @101 () $A.entry("cuGetExportTable") $A.route(local) $A.replay(forbid)
      $A.reason("NVIDIA's private tables are not imitated");
  profilerStart @102 () $A.entry("cuProfilerStart") $A.route(local) $A.reason("no profiler is attached");
  profilerStop @103 () $A.entry("cuProfilerStop") $A.route(local) $A.reason("no profiler is attached");

  # ------------------------------------------------------------------ names for copy* and fill
  memcpy @104 () $A.entry("cuMemcpy") $A.route(local) $A.reason("a copy, by where both ends lie");
  memcpyHtoD @105 () $A.entry("cuMemcpyHtoD_v2") $A.route(local) $A.reason("a copy, by where both ends lie");
  memcpyDtoH @106 () $A.entry("cuMemcpyDtoH_v2") $A.route(local) $A.reason("a copy, by where both ends lie");
  memcpyDtoD @107 () $A.entry("cuMemcpyDtoD_v2") $A.route(local) $A.reason("a copy, by where both ends lie");
  memcpyPeer @108 () $A.entry("cuMemcpyPeer") $A.route(local) $A.reason("a copy, by where both ends lie");
  memcpyAsync @109 () $A.entry("cuMemcpyAsync") $A.route(local) $A.reason("a copy, by where both ends lie");
  memcpyHtoDAsync @110 () $A.entry("cuMemcpyHtoDAsync_v2") $A.route(local) $A.reason("a copy, by where both ends lie");
  memcpyDtoHAsync @111 () $A.entry("cuMemcpyDtoHAsync_v2") $A.route(local) $A.reason("a copy, by where both ends lie");
  memcpyDtoDAsync @112 () $A.entry("cuMemcpyDtoDAsync_v2") $A.route(local) $A.reason("a copy, by where both ends lie");
  memcpyPeerAsync @113 () $A.entry("cuMemcpyPeerAsync") $A.route(local) $A.reason("a copy, by where both ends lie");
  memcpy2D @114 () $A.entry("cuMemcpy2D_v2") $A.route(local) $A.reason("copyBox");
  memcpy2DUnaligned @115 () $A.entry("cuMemcpy2DUnaligned_v2") $A.route(local) $A.reason("copyBox");
  memcpy2DAsync @116 () $A.entry("cuMemcpy2DAsync_v2") $A.route(local) $A.reason("copyBox");
  memcpy3D @117 () $A.entry("cuMemcpy3D_v2") $A.route(local) $A.reason("copyBox");
  memcpy3DAsync @118 () $A.entry("cuMemcpy3DAsync_v2") $A.route(local) $A.reason("copyBox");
  memsetD8 @119 () $A.entry("cuMemsetD8_v2") $A.route(local) $A.reason("fill");
  memsetD8Async @120 () $A.entry("cuMemsetD8Async") $A.route(local) $A.reason("fill");
  memsetD2D8 @121 () $A.entry("cuMemsetD2D8_v2") $A.route(local) $A.reason("fill");
  memsetD2D8Async @122 () $A.entry("cuMemsetD2D8Async") $A.route(local) $A.reason("fill");
  memsetD16 @123 () $A.entry("cuMemsetD16_v2") $A.route(local) $A.reason("fill");
  memsetD16Async @124 () $A.entry("cuMemsetD16Async") $A.route(local) $A.reason("fill");
  memsetD2D16 @125 () $A.entry("cuMemsetD2D16_v2") $A.route(local) $A.reason("fill");
  memsetD2D16Async @126 () $A.entry("cuMemsetD2D16Async") $A.route(local) $A.reason("fill");
  memsetD32 @127 () $A.entry("cuMemsetD32_v2") $A.route(local) $A.reason("fill");
  memsetD32Async @128 () $A.entry("cuMemsetD32Async") $A.route(local) $A.reason("fill");
  memsetD2D32 @129 () $A.entry("cuMemsetD2D32_v2") $A.route(local) $A.reason("fill");
  memsetD2D32Async @130 () $A.entry("cuMemsetD2D32Async") $A.route(local) $A.reason("fill");

  # ------------------------------------------------------------------ the program's functions in a stream
  hostFunction @131 (stream :UInt64 $A.uses(stream) $A.nullable, line :UInt32) -> () $A.entry("cuLaunchHostFunc")
      $A.route(post) $A.replay(work) $A.clientByHand("the function runs in the program's process")
      $A.workerByHand("the GPU tells the program, and waits for it");
  streamAddCallback @132 () $A.entry("cuStreamAddCallback") $A.route(local) $A.reason("hostFunction");

  # ------------------------------------------------------------------ arrays
  arrayCreate @133 (array :UInt64 $A.creates(array), shape :ArrayShape) -> () $A.entry("cuArray3DCreate_v2")
      $A.route(call) $A.replay(build) $A.noWork $A.clientByHand("the client remembers the shape")
      $A.workerByHand("the shape is one value");
  arrayCreatePlain @134 () $A.entry("cuArrayCreate_v2") $A.route(local) $A.reason("arrayCreate");
  arrayDestroy @135 (array :UInt64 $A.destroys(array)) -> () $A.entry("cuArrayDestroy") $A.route(post) $A.replay(build)
      $A.noWork $A.clientByHand("a level of a mipmapped array ends with that") $A.workerByHand("forgets the shape too");
  arrayGetShape @136 () $A.entry("cuArray3DGetDescriptor_v2") $A.route(local) $A.reason("told by the program");
  arrayGetFlatShape @137 () $A.entry("cuArrayGetDescriptor_v2") $A.route(local) $A.reason("told by the program");
  mipmapCreate @138 (mipmap :UInt64 $A.creates(mipmappedArray), shape :ArrayShape, levels :UInt32) -> ()
      $A.entry("cuMipmappedArrayCreate") $A.route(call) $A.replay(build) $A.noWork $A.clientByHand("as arrayCreate")
      $A.workerByHand("as arrayCreate");
  mipmapLevel @139 (level :UInt64 $A.creates(array), mipmap :UInt64 $A.uses(mipmappedArray) $A.parent, index :UInt32) ->
      (shape :ArrayShape) $A.entry("cuMipmappedArrayGetLevel") $A.route(call) $A.replay(build) $A.noWork
      $A.clientByHand("one handle a level") $A.workerByHand("tells the level's shape");
  mipmapDestroy @140 (mipmap :UInt64 $A.destroys(mipmappedArray)) -> () $A.entry("cuMipmappedArrayDestroy")
      $A.route(post) $A.replay(build) $A.noWork $A.clientByHand("its levels end with it") $A.workerByHand("as above");
  copyBox @141 (toArray :UInt64 $A.uses(array) $A.nullable, fromArray :UInt64 $A.uses(array) $A.nullable,
                to :Corner, from :Corner, widthBytes :UInt64, height :UInt64, depth :UInt64,
                stream :UInt64 $A.uses(stream) $A.nullable) -> ()
      $A.route(post) $A.replay(work) $A.workerByHand("an end that is no array is memory of the session's");
  # Packed in the slab: rows of widthBytes, slices of height rows. A depth of 0 is one slice, as before there was a depth.
  copyBoxFromSlab @142 (toArray :UInt64 $A.uses(array) $A.nullable, slab :UInt32, to :Corner, widthBytes :UInt64,
                        height :UInt64, stream :UInt64 $A.uses(stream) $A.nullable, depth :UInt64) -> ()
      $A.route(post) $A.replay(work) $A.workerByHand("the GPU frees the slab");
  copyBoxToSlab @143 (fromArray :UInt64 $A.uses(array) $A.nullable, slab :UInt32, from :Corner, widthBytes :UInt64,
                      height :UInt64, stream :UInt64 $A.uses(stream) $A.nullable, depth :UInt64) -> ()
      $A.route(signal) $A.replay(query) $A.workerByHand("the GPU says when the bytes are there");
  memcpyHtoA @144 () $A.entry("cuMemcpyHtoA_v2") $A.route(local) $A.reason("copyBox");
  memcpyAtoH @145 () $A.entry("cuMemcpyAtoH_v2") $A.route(local) $A.reason("copyBox");
  memcpyHtoAAsync @146 () $A.entry("cuMemcpyHtoAAsync_v2") $A.route(local) $A.reason("copyBox");
  memcpyAtoHAsync @147 () $A.entry("cuMemcpyAtoHAsync_v2") $A.route(local) $A.reason("copyBox");
  memcpyDtoA @148 () $A.entry("cuMemcpyDtoA_v2") $A.route(local) $A.reason("copyBox");
  memcpyAtoD @149 () $A.entry("cuMemcpyAtoD_v2") $A.route(local) $A.reason("copyBox");
  memcpyAtoA @150 () $A.entry("cuMemcpyAtoA_v2") $A.route(local) $A.reason("copyBox");

  # ------------------------------------------------------------------ textures and surfaces
  textureCreate @151 (texture :UInt64 $A.creates(texture), array :UInt64 $A.uses(array) $A.nullable, mipmap :UInt64
      $A.uses(mipmappedArray) $A.nullable, memory :TexturedMemory, sampling :Sampling, hasView :Bool, view :TextureView)
      -> (value :UInt64) $A.entry("cuTexObjectCreate") $A.route(call) $A.replay(build) $A.noWork
      $A.clientByHand("the program is given the device's handle")
      $A.workerByHand("restore makes it have that one again");
  textureDestroy @152 (texture :UInt64 $A.destroys(texture)) -> () $A.entry("cuTexObjectDestroy") $A.route(post)
      $A.replay(build) $A.noWork $A.clientByHand("found by the device's handle") $A.workerByHand("likewise");
  surfaceCreate @153 (surface :UInt64 $A.creates(surface), array :UInt64 $A.uses(array)) -> (value :UInt64)
      $A.entry("cuSurfObjectCreate") $A.route(call) $A.replay(build) $A.noWork $A.clientByHand("as textureCreate")
      $A.workerByHand("as textureCreate");
  surfaceDestroy @154 (surface :UInt64 $A.destroys(surface)) -> () $A.entry("cuSurfObjectDestroy") $A.route(post)
      $A.replay(build) $A.noWork $A.clientByHand("as textureDestroy") $A.workerByHand("as textureDestroy");
  textureGetResource @155 () $A.entry("cuTexObjectGetResourceDesc") $A.route(local) $A.reason("told by the program");
  textureGetSampling @156 () $A.entry("cuTexObjectGetTextureDesc") $A.route(local) $A.reason("told by the program");
  textureGetView @157 () $A.entry("cuTexObjectGetResourceViewDesc") $A.route(local) $A.reason("told by the program");
  surfaceGetResource @158 () $A.entry("cuSurfObjectGetResourceDesc") $A.route(local) $A.reason("told by the program");
  memcpy3DPeer @159 () $A.entry("cuMemcpy3DPeer") $A.route(local) $A.reason("one address space holds every device");
  memcpy3DPeerAsync @160 () $A.entry("cuMemcpy3DPeerAsync") $A.route(local) $A.reason("as memcpy3DPeer");

  # ------------------------------------------------------------------ after a fault
  contextReset @161 (context :UInt64 $A.destroys(context)) -> ()   # the device's number
      $A.route(call) $A.replay(build) $A.noWork
      $A.workerByHand("a new context, with the session's memory registered again");

  # ------------------------------------------------------------------ the program's own memory, made a part of the host arena
  hostAdopt @162 (address :UInt64 $A.creates(hostLease), arenaAddress :UInt64, bytes :UInt64) -> ()
      $A.route(call) $A.replay(build) $A.noWork
      $A.workerByHand("maps that part of the arena at the program's address too, and registers it");
  hostRelease @163 (address :UInt64 $A.destroys(hostLease)) -> ()
      $A.route(call) $A.replay(build) $A.noWork $A.workerByHand("the opposite of hostAdopt");
  hostRegister @164 () $A.entry("cuMemHostRegister_v2") $A.route(local) $A.reason("hostAdopt");
  hostUnregister @165 () $A.entry("cuMemHostUnregister") $A.route(local) $A.reason("hostRelease");

  # ------------------------------------------------------------------ stream-ordered memory
  streamMark @166 (stream :UInt64 $A.uses(stream) $A.nullable, line :UInt32) -> ()
      $A.route(post) $A.replay(work) $A.workerByHand("the GPU writes an event line: what was freed before it is free");
  memAllocAsync @167 () $A.entry("cuMemAllocAsync") $A.route(local) $A.reason("memAlloc, by the client's pools");
  memAllocFromPool @168 () $A.entry("cuMemAllocFromPoolAsync") $A.route(local)
      $A.reason("memAlloc, by the client's pools");
  memFreeAsync @169 () $A.entry("cuMemFreeAsync") $A.route(local) $A.reason("memFree and streamMark");
  memPoolCreate @170 () $A.entry("cuMemPoolCreate") $A.route(local) $A.reason("pools are the client's");
  memPoolDestroy @171 () $A.entry("cuMemPoolDestroy") $A.route(local) $A.reason("pools are the client's");
  memPoolTrimTo @172 () $A.entry("cuMemPoolTrimTo") $A.route(local) $A.reason("pools are the client's");
  memPoolSetAttribute @173 () $A.entry("cuMemPoolSetAttribute") $A.route(local) $A.reason("pools are the client's");
  memPoolGetAttribute @174 () $A.entry("cuMemPoolGetAttribute") $A.route(local) $A.reason("pools are the client's");
  memPoolSetAccess @175 () $A.entry("cuMemPoolSetAccess") $A.route(local) $A.reason("pools are the client's");
  memPoolGetAccess @176 () $A.entry("cuMemPoolGetAccess") $A.route(local) $A.reason("pools are the client's");
  deviceGetDefaultMemPool @177 () $A.entry("cuDeviceGetDefaultMemPool") $A.route(local)
      $A.reason("pools are the client's");
  deviceGetMemPool @178 () $A.entry("cuDeviceGetMemPool") $A.route(local) $A.reason("pools are the client's");
  deviceSetMemPool @179 () $A.entry("cuDeviceSetMemPool") $A.route(local) $A.reason("pools are the client's");

  # ------------------------------------------------------------------ images that the node has already
  # digest: SHA-256 of the image; none where the worker has no store. Where the image is not found, it may be sent now.
  blobFind @180 (blob :UInt64, digest :Data, totalBytes :UInt64) -> (found :Bool)
      $A.route(call) $A.replay(query) $A.noWork $A.workerByHand("looks into the node's image store, makes room for the image");

  # ------------------------------------------------------------------ a few bytes back
  copyToSlot @181 (source :UInt64, bytes :UInt32, stream :UInt64 $A.uses(stream) $A.nullable) -> ()
      $A.route(signal) $A.replay(query) $A.workerByHand("as copyToSlab, into the waiting call's slot");

  # ------------------------------------------------------------------ replies larger than a slot
  replyPart @182 (offset :UInt32) -> (bytes :Data)   # in bytes of the reply before, which the worker keeps until all is fetched
      $A.route(call) $A.replay(query) $A.noWork $A.workerByHand("the worker keeps what of a reply its slot does not take");

  # ------------------------------------------------------------------ what kernels print
  outputTake @183 () -> (text :Data, more :Bool)   # of the current device; a part that fits into a slot
      $A.route(call) $A.replay(query) $A.noWork $A.workerByHand("has the driver write it, and keeps what is too much for one reply");

  # ------------------------------------------------------------------ older versions
  getProcAddressFirst @184 () $A.entry("cuGetProcAddress") $A.route(local)
      $A.reason("getProcAddress, without a place for the reason");

  # ------------------------------------------------------------------ without effect since Maxwell, and deprecated
  ctxGetSharedMemConfig @185 () $A.entry("cuCtxGetSharedMemConfig") $A.route(local) $A.reason("banks have one size");
  ctxSetSharedMemConfig @186 () $A.entry("cuCtxSetSharedMemConfig") $A.route(local)
      $A.reason("as ctxGetSharedMemConfig");
  funcSetSharedMemConfig @187 () $A.entry("cuFuncSetSharedMemConfig") $A.route(local)
      $A.reason("as ctxGetSharedMemConfig");

  # ------------------------------------------------------------------ a place in the ring without a call
  nothing @188 () -> () $A.route(post) $A.replay(query) $A.noWork
      $A.workerByHand("of a call that failed in the program, after it had taken its place in the ring");

  # ------------------------------------------------------------------ many queries in one frame
  funcAttributes @189 (function :UInt64 $A.uses(function)) -> (attributes :List(Int32), known :UInt64)
      # attributes: by CUfunction_attribute; bit i of known: the driver knows attribute i
      $A.route(call) $A.replay(query) $A.noWork $A.workerByHand("gathers many driver calls into one reply");
  occupancyTable @190 (function :UInt64 $A.uses(function), flags :UInt32, blockSizes :List(Int32), sharedBytes :List(UInt64))
      -> (results :List(Int32), numBlocks :List(Int32))   # CUresult and, if that is success, blocks of each size
      $A.route(call) $A.replay(query) $A.noWork $A.workerByHand("gathers many driver calls into one reply");
}

struct ArrayShape {
  # CUDA_ARRAY3D_DESCRIPTOR.
  width @0 :UInt64;
  height @1 :UInt64;
  depth @2 :UInt64;
  format @3 :UInt32;
  channels @4 :UInt32;
  flags @5 :UInt32;
}

struct Corner {
  # Where one end of a copied box begins: in an array x (bytes), row and slice; else an address with distances in bytes.
  x @0 :UInt64;
  row @1 :UInt64;
  slice @2 :UInt64;
  address @3 :UInt64;
  pitch @4 :UInt64;
  slicePitch @5 :UInt64;
}

struct TexturedMemory {
  # CUDA_RESOURCE_DESC of plain memory; address 0: there is none. With a height it is rows.
  address @0 :UInt64;
  bytes @1 :UInt64;
  width @2 :UInt64;
  height @3 :UInt64;
  pitch @4 :UInt64;
  format @5 :UInt32;
  channels @6 :UInt32;
}

struct Sampling {
  # CUDA_TEXTURE_DESC.
  addressX @0 :UInt32;
  addressY @1 :UInt32;
  addressZ @2 :UInt32;
  filter @3 :UInt32;
  flags @4 :UInt32;
  maxAnisotropy @5 :UInt32;
  mipmapFilter @6 :UInt32;
  levelBias @7 :Float32;
  leastLevel @8 :Float32;
  mostLevel @9 :Float32;
  borderR @10 :Float32;
  borderG @11 :Float32;
  borderB @12 :Float32;
  borderA @13 :Float32;
}

struct TextureView {
  # CUDA_RESOURCE_VIEW_DESC.
  format @0 :UInt32;
  firstLevel @1 :UInt32;
  lastLevel @2 :UInt32;
  firstLayer @3 :UInt32;
  lastLayer @4 :UInt32;
  width @5 :UInt64;
  height @6 :UInt64;
  depth @7 :UInt64;
}
