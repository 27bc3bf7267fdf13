@0xd4a1f7e05b93c862;
# What a C prototype cannot say of a CUDA call. cuda.capnp uses these; generator/ reads them.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("vgpu::api");

enum Route {
  post @0;    # the frame is written and the call returns; errors are CUDA's asynchronous ones
  call @1;    # waits for the worker's answer
  signal @2;  # waits until the GPU has come to this place of the stream and writes it into the thread's slot
  local @3;   # answered in the program's process; no frame
}

enum Replay {
  query @0;   # changes nothing that outlives it; never kept
  build @1;   # part of the recipe of an object
  work @2;    # has an effect on memory; kept by the log, not by the object list
  forbid @3;  # not possible in a session; `reason` says why
}

enum Kind {
  # Of objects. The order is that of the handles' first byte; append only.
  none @0;
  context @1;
  module @2;
  function @3;
  variable @4;
  stream @5;
  event @6;
  memory @7;      # handle = device address
  hostMemory @8;  # handle = address in the host arena
  lease @9;       # physical device memory behind a part of a device arena
  hostLease @10;  # a part of the host arena that the driver knows
  blob @11;       # bytes of a module image, kept by the worker
  array @12;      # of its own, or a level of a mipmapped one
  mipmappedArray @13;
  texture @14;    # the program knows it by the device's handle, which kernels read
  surface @15;    # likewise
}

# Of a method.
annotation entry @0xe2b0c9a4d1f35701 (method) :Text;      # exported symbol: a row of driver.entries
annotation driver @0xe2b0c9a4d1f35704 (method) :Text;     # what the worker calls, where it is not `entry`
annotation route @0xe2b0c9a4d1f35705 (method) :Route;
annotation replay @0xe2b0c9a4d1f35706 (method) :Replay;
annotation reason @0xe2b0c9a4d1f35707 (method) :Text;
annotation clientByHand @0xe2b0c9a4d1f35708 (method) :Text;  # people write the client's half, because …
annotation workerByHand @0xe2b0c9a4d1f35709 (method) :Text;  # people write the worker's half, because …
annotation noWork @0xe2b0c9a4d1f3570a (method) :Void;     # leaves nothing for the GPU to do

# Of a parameter: what happens to the object that it names.
annotation creates @0xe2b0c9a4d1f35711 (param, field) :Kind;
annotation uses @0xe2b0c9a4d1f35712 (param, field) :Kind;
annotation changes @0xe2b0c9a4d1f35713 (param, field) :Kind;
annotation destroys @0xe2b0c9a4d1f35714 (param, field) :Kind;
annotation parent @0xe2b0c9a4d1f35715 (param, field) :Void;  # the created object lives in this one
annotation nullable @0xe2b0c9a4d1f35716 (param, field) :Void;
