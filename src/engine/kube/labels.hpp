// SPDX-License-Identifier: Apache-2.0
// A node profile as labels of a Kubernetes node. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "node/profile.hpp"

namespace berth::engine {

/// Names and values that Kubernetes accepts for labels.
using NodeLabels = std::map<std::string, std::string>;

/// The labels below "berth.dev/", those of NVIDIA's GPU feature discovery
/// ("nvidia.com/gpu.product") if the node has NVIDIA's GPUs, and those of Node Feature Discovery
/// ("feature.node.kubernetes.io/cpu-cpuid.AVX512F"). A fact that the profile lacks has no label.
NodeLabels node_labels(const node::Profile& profile);

/// `text` as the value of a label: characters that a value cannot have become '-', and it has at
/// most 63. Empty if nothing is left.
/// https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
std::string label_value(std::string_view text);

/// A file for NFD's directory features.d: "NAME=VALUE" lines. Without the labels of NFD itself,
/// which its worker makes.
std::string nfd_feature_file(const NodeLabels& labels);

}  // namespace berth::engine
