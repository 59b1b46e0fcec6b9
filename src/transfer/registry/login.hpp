// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "image/transfer_protocol.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// Checks the credential at the registry and files it; docker's "Login Succeeded" is the status.
/// Errors: usage, not_found, denied (wrong user name or password), io.
Result<image::TransferResult> login(const image::LoginRequest& request, const EventSink& events,
                                    Cancel& cancel);

/// Takes the registry's credential out of every file and helper; docker's words are the status.
/// Errors: denied, io, corrupt (a file that is not what docker writes).
Result<image::TransferResult> logout(const image::LogoutRequest& request);

}  // namespace berth::transfer
