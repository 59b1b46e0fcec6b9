// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "node/what_if.hpp"

namespace berth::match {

/// An amd64 node that has what `words` say, as in `berth match --node`: "cpu=haswell gpu=sm_90".
inline node::Profile node_of(std::string_view words) {
  node::Profile profile;
  profile.architecture = "amd64";
  auto made = node::with(std::move(profile), words);
  EXPECT_TRUE(made.ok()) << words;
  return std::move(*made);
}

}  // namespace berth::match
