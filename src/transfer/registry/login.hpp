// SPDX-License-Identifier: Apache-2.0
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
/// Errors: denied, io, corrupt (a file that has not docker's format).
Result<image::TransferResult> logout(const image::LogoutRequest& request);

}  // namespace berth::transfer
