// Admits a program: gives it a state directory, devices and a worker for its session, or the reason for a refusal.
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <utility>

#include "tools/common/descriptor.h"
#include "tools/common/reason.h"
#include "tools/vgpud/log.h"
#include "tools/vgpud/sessions.h"
#include "tools/vgpud/visible-devices.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/text.h"

namespace vgpu::daemon {
namespace {

// The worker's part of opening a session: it begins to consume, and returns its memory for the program. `segment`: the segment that it must
// use, if the program has one.
kj::Promise<kj::Own<WorkerProcess>> attachProgram(kj::Own<WorkerProcess> worker, Session& session, Exchange& exchange,
                                                  kj::AutoCloseFd segment) {
  auto request = worker->remote().attachRequest();
  request.setExchange(exchange.serve(session));
  request.setDevices(kj::arrayPtr(session.devices.data(), session.devices.size()));
  if (segment.get() >= 0) request.setSegment(kj::heap<PassedDescriptor>(kj::mv(segment)));
  auto memory = request.send().then([](capnp::Response<control::Worker::AttachResults>&& given) {
    auto both = kj::heapArrayBuilder<kj::Promise<kj::AutoCloseFd>>(2);
    both.add(receiveDescriptor(given.getSegment()));
    both.add(receiveDescriptor(given.getHostArena()));
    return kj::joinPromises(both.finish());
  });
  auto answer = worker->orExit(kj::mv(memory));
  return answer.then([worker = kj::mv(worker), &session](kj::Array<kj::AutoCloseFd>&& descriptors) mutable {
    faultPoint("run.worker-attached");
    session.hostArena = duplicate(descriptors[1]);
    session.memory = kj::mv(descriptors);
    return kj::mv(worker);
  });
}

}  // namespace

void Sessions::admit(kj::AutoCloseFd socket) {
  auto holder = kj::heap<kj::Own<ProgramLink>>(kj::heap<ProgramLink>(io, kj::mv(socket)));
  auto& link = *holder;
  auto opened = link->receiveOpen().then([this, &link](ProgramOpen&& request) -> kj::Promise<void> {
    if (!request.place.exists()) return open(link, kj::mv(request));
    std::string guest = request.place.guest;
    return pauses.open(std::move(guest),
                       [this, &link, request = kj::mv(request)]() mutable { return open(link, kj::mv(request)); });
  });
  admissions.add(opened
                     .catch_([this, &link](kj::Exception&& exception) {
                       warnLimited("admission", 0, "no session: " + reasonOf(exception));
                       if (link.get() != nullptr) refuse(kj::mv(link), reasonOf(exception));
                     })
                     .attach(kj::mv(holder)));
}

// Takes `link` over only when a session can own it.
kj::Promise<void> Sessions::open(kj::Own<ProgramLink>& link, ProgramOpen request) {
  faultPoint("run.session-opening");
  requireAdmitting();
  do {
    request.session = newSessionId();
  } while (find(request.session) != nullptr);
  pid_t owner = link->peer().pid > 0 ? link->peer().pid : request.pid;
  auto made = files.run([folder = directory.sessions(), id = request.session, owner] {
    return StateDirectory::make(folder, id, owner);
  });
  return made.then([this, &link, request = kj::mv(request)](StateDirectory::Shared&& state) mutable {
    return begin(link, kj::mv(request), kj::mv(state));
  });
}

kj::Promise<void> Sessions::begin(kj::Own<ProgramLink>& link, ProgramOpen request, StateDirectory::Shared state) {
  KJ_ON_SCOPE_FAILURE(remove(state));
  requireAdmitting();
  VisibleDevices visible;
  const char* own = pool.workerKind().label == "cuda" ? std::getenv("CUDA_VISIBLE_DEVICES") : nullptr;  // the emulated device ignores it
  if (request.visible) visible = visibleDevices(*request.visible, pool.devices(), own);
  if (!visible.refusal.empty()) {
    warnLimited("admission", 0, "no session: " + visible.refusal);
    remove(state);
    refuse(kj::mv(link), visible.refusal, visible.isInvalid);
    return kj::READY_NOW;
  }
  auto session = kj::heap<kj::Own<Session>>(kj::heap<Session>(io, processes, kj::mv(link), request, state));
  (*session)->devices = std::move(visible.ordinals);
  auto taken = kj::evalNow([this] { return pool.take(); });  // evalNow: if no worker can be started, the session must be undone
  auto ready =
      taken.then([this, &opened = **session, segment = kj::mv(request.segment)](kj::Own<WorkerProcess>&& worker) mutable {
        return attachProgram(kj::mv(worker), opened, exchange, kj::mv(segment));
      });
  auto opened = whileProgramLives(**session, kj::mv(ready))
                    .then([this, &session = *session](kj::Own<WorkerProcess>&& worker) {
                      requireAdmitting();
                      session->link->send(
                          [&](control::ToSession::Builder message) {
                            auto opened = message.initOpened();
                            opened.setSession(reader(session->id));
                            opened.setDirectory(reader(session->directory->path()));
                          },
                          kj::mv(session->memory));
                      keep(kj::mv(session), kj::mv(worker));
                    });
  return opened.catch_([this, session = kj::mv(session)](kj::Exception&& exception) mutable {
    spdlog::warn("no session for pid {}: {}", (*session)->pid, reasonOf(exception));
    remove((*session)->directory);
    refuse(kj::mv(*session), reasonOf(exception));
  });
}

}  // namespace vgpu::daemon
