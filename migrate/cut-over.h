// When the rounds of a migration end. Each leaves less to be sent, as long as the program changes less meanwhile than the streams
// take. It is held when what is left can be sent in a part of the time for which it may be, or does not get less any more.
//
// For rounds that follow each other at once. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vgpu::migrate {

// Of the time for which a program may be held: the rest of it goes to quiescing, files, objects and the handover.
constexpr double shareOfCopying = 0.25;

class CutOver {
 public:
  static constexpr unsigned mostRounds = 30;

  // `downtime`: for so many seconds the program may be held.
  explicit CutOver(double downtime) : downtime(downtime) {}

  // Before each round, with the number of bytes that the target lacks now: whether there is to be none, and the program held.
  bool isDue(uint64_t bytes);
  // After each, with what it has sent.
  void noteRound(uint64_t bytes, double seconds);

  // How many seconds it takes to send the bytes of the last isDue(), as fast as in the last round. Nothing before the first.
  std::optional<double> expectedSeconds() const;
  // The name of the round that comes, for a person: "round 2 (would be held for 0.310 s)".
  std::string phase() const;

 private:
  const double downtime;
  unsigned rounds = 0;
  uint64_t left = 0;
  double rate = 0;  // bytes a second
};

}  // namespace vgpu::migrate
