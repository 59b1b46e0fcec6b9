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

/// What is published beside the index or manifest `subject`, as far as it is to be believed by
/// `trust`; nothing where there is none. Whatever is wrong with it is a warning, and nothing: an
/// image is not worse for what others have put beside it.
/// Errors: interrupted.
Result<std::optional<image::PublishedFacts>> fetch_published(Registry& registry,
                                                             const Digest& subject,
                                                             const image::FactsTrust& trust,
                                                             Events& events);

Result<image::TransferResult> publish_facts(const image::PublishFactsRequest& request,
                                            const EventSink& sink, Cancel& cancel);

}  // namespace berth::transfer
