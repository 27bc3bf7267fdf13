// The client's state of each kind of object: one line a kind that has more than a head.
//
// Any thread may read the state of an object that another ends: it stays where it is, and is an object's of that kind for ever. So
// what changes while the object lives is atomic or guarded by the state itself, and what does not is written before the handle is
// the program's. reset() is called under the table's mutex, before the place is another object's; what a state points to ends then,
// so a program may not end an object that another thread's call is about, as CUDA says.
#pragma once

#include "intercept/session/kinds/array.h"
#include "intercept/session/kinds/code-library.h"
#include "intercept/session/kinds/context.h"
#include "intercept/session/kinds/event.h"
#include "intercept/session/kinds/function.h"
#include "intercept/session/kinds/graph-exec.h"
#include "intercept/session/kinds/green-context.h"
#include "intercept/session/kinds/library-object.h"
#include "intercept/session/kinds/link.h"
#include "intercept/session/kinds/module.h"
#include "intercept/session/kinds/stream.h"

namespace vgpu::client {

template <api::Kind kind>
struct KindState {
  using Type = ObjectHead;
};

template <> struct KindState<api::Kind::CONTEXT> { using Type = ContextState; };
template <> struct KindState<api::Kind::MODULE> { using Type = ModuleState; };
template <> struct KindState<api::Kind::FUNCTION> { using Type = FunctionState; };
template <> struct KindState<api::Kind::STREAM> { using Type = StreamState; };
template <> struct KindState<api::Kind::EVENT> { using Type = EventState; };
template <> struct KindState<api::Kind::ARRAY> { using Type = ArrayState; };
template <> struct KindState<api::Kind::MIPMAPPED_ARRAY> { using Type = ArrayState; };
template <> struct KindState<api::Kind::LINK> { using Type = LinkState; };
template <> struct KindState<api::Kind::LIBRARY> { using Type = CodeLibraryState; };
template <> struct KindState<api::Kind::KERNEL> { using Type = KernelState; };
template <> struct KindState<api::Kind::LIBRARY_OBJECT> { using Type = LibraryObjectState; };
template <> struct KindState<api::Kind::GRAPH_EXEC> { using Type = GraphExecState; };
template <> struct KindState<api::Kind::GREEN_CONTEXT> { using Type = GreenContextState; };
template <> struct KindState<api::Kind::RESOURCE_DESCRIPTOR> { using Type = ResourceDescriptorState; };

// Of an object of `kind`.
template <api::Kind kind>
using StateOf = typename KindState<kind>::Type;

}  // namespace vgpu::client
