@0x8c7be1f2a9d04356;
# One record of the object list, as LMDB and a snapshot keep it (docs/objects.md). Fields are appended, never reused.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("vgpu::stored");

struct Record {
  kind @0 :UInt16;          # api::Kind
  handle @1 :UInt64;        # virtual handle; for a context: the device's number
  device @2 :UInt8;
  destroyedAt @3 :UInt64;   # number of the frame that destroyed it, or its parent; 0 while it lives
  parented @4 :Bool;        # the first of `needs` is the parent
  address @5 :UInt64;
  bytes @6 :UInt64;
  needs @7 :List(Need);
  recipe @8 :List(Frame);   # by number, ascending; never empty
  destroyedRing @9 :UInt8;  # place of the frame that destroyed it
  destroyedPosition @10 :UInt64;
}

struct Need {
  kind @0 :UInt16;
  handle @1 :UInt64;
  record @2 :UInt64;        # key of that record: handles are reused, keys are not
}

struct Frame {
  position @0 :UInt64;      # in the ring of `device`
  method @1 :UInt16;        # the method's number in cuda.table
  device @2 :UInt8;
  message @3 :Data;         # one segment of words, without a segment table
  address @4 :UInt64;
  bytes @5 :UInt64;
  number @6 :UInt64;        # numbers the building frames of all rings
}
