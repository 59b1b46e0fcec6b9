// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>

namespace berth::test {

/// What the kernel would answer to `data`: the classic BPF subset that seccomp programs use.
/// Throws on whatever the kernel's checker would refuse.
inline uint32_t run_filter(std::span<const sock_filter> program, const seccomp_data& data) {
  uint32_t a = 0;
  for (size_t at = 0; at < program.size(); ++at) {
    const sock_filter& step = program[at];
    auto branch = [&](bool taken) { at += taken ? step.jt : step.jf; };
    switch (step.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (step.k % 4 != 0 || step.k + 4 > sizeof data) throw std::runtime_error("bad load");
        std::memcpy(&a, reinterpret_cast<const char*>(&data) + step.k, 4);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        a &= step.k;
        break;
      case BPF_JMP | BPF_JA:
        at += step.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        branch(a == step.k);
        break;
      case BPF_JMP | BPF_JGT | BPF_K:
        branch(a > step.k);
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        branch(a >= step.k);
        break;
      case BPF_RET | BPF_K:
        return step.k;
      default:
        throw std::runtime_error("unknown instruction");
    }
  }
  throw std::runtime_error("ran off the end");
}

}  // namespace berth::test
