// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "image/published_facts.hpp"
#include "image/transfer_protocol.hpp"
#include "transfer/registry/registry.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// The facts that are published about the index or manifest `subject` and that `trust` allows;
/// nothing if there are none. Any fault in them only gives a warning and no facts: data that others
/// have attached must not make an image unusable.
/// Errors: interrupted.
Result<std::optional<image::PublishedFacts>> fetch_published(Registry& registry,
                                                             const Digest& subject,
                                                             const image::FactsTrust& trust,
                                                             Events& events);

Result<image::TransferResult> publish_facts(const image::PublishFactsRequest& request,
                                            const EventSink& sink, Cancel& cancel);

}  // namespace berth::transfer
