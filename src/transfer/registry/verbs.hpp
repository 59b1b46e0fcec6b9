// SPDX-License-Identifier: Apache-2.0
// Requests about a registry, not about one of its images.
#pragma once

#include "image/transfer_protocol.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// Checks the credential at the registry and stores it; the status is docker's "Login Succeeded".
/// Errors: usage, not_found, denied (wrong user name or password), io.
Result<image::TransferResult> login(const image::LoginRequest& request, const EventSink& events,
                                    Cancel& cancel);

/// Removes the registry's credential from every file and helper; the status is docker's.
/// Errors: denied, io, corrupt (a file that is not in docker's format).
Result<image::TransferResult> logout(const image::LogoutRequest& request);

/// Tries Docker's search first, which ranks by stars; if a registry has none, searches the list of
/// its repositories. Docker Hub has the search, but no such list. Errors: usage, denied, not_found,
/// busy, io, unsupported (the registry has neither, or lacks what the filters need), corrupt.
/// Source: Docker Registry HTTP API V1 "Search", distribution's "Listing Repositories".
Result<image::TransferResult> search(const image::SearchRequest& request, const EventSink& sink,
                                     Cancel& cancel);

/// Errors: usage, denied, not_found, busy, io, corrupt.
Result<image::TransferResult> list_tags(const image::TagsRequest& request, const EventSink& sink,
                                        Cancel& cancel);

}  // namespace berth::transfer
