// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text.hpp"

namespace berth {
namespace {

constexpr std::array<std::pair<Kind, std::string_view>, 10> kKindNames{{
    {Kind::usage, "usage"},
    {Kind::not_found, "not_found"},
    {Kind::exists, "exists"},
    {Kind::denied, "denied"},
    {Kind::unsupported, "unsupported"},
    {Kind::busy, "busy"},
    {Kind::corrupt, "corrupt"},
    {Kind::interrupted, "interrupted"},
    {Kind::io, "io"},
    {Kind::bug, "bug"},
}};

}  // namespace

std::string_view kind_name(Kind kind) {
  for (const auto& [value, name] : kKindNames) {
    if (value == kind) return name;
  }
  return "bug";
}

Kind kind_from_name(std::string_view name) {
  for (const auto& [value, spelling] : kKindNames) {
    if (spelling == name) return value;
  }
  return Kind::bug;
}

Kind kind_from_errno(int value) {
  switch (value) {
    case ENOENT:
    case ESRCH:
    case ENXIO:
    case ENODEV:
      return Kind::not_found;
    case EEXIST:
      return Kind::exists;
    case EACCES:
    case EPERM:
    case EROFS:
      return Kind::denied;
    case ENOSYS:
    case EOPNOTSUPP:
      return Kind::unsupported;
    case EBUSY:
    case EAGAIN:
    case ETXTBSY:
      return Kind::busy;
    case EINTR:
    case ETIMEDOUT:
      return Kind::interrupted;
    default:
      return Kind::io;
  }
}

Error Error::with_context(std::string text) && {
  context.push_back(std::move(text));
  return std::move(*this);
}

Error Error::with_hint(std::string text) && {
  if (hint.empty()) hint = std::move(text);
  return std::move(*this);
}

Error make_error(Kind kind, std::string what, std::string hint, SourceLocation where) {
  return Error{kind, 0, std::move(what), std::move(hint), {}, where};
}

Error sys_error(int saved_errno, std::string what, SourceLocation where) {
  return Error{kind_from_errno(saved_errno), saved_errno, std::move(what), {}, {}, where};
}

Error SavedErrno::error(std::string what, SourceLocation where) const {
  return sys_error(value, std::move(what), where);
}

SavedErrno errno_now() {
  return {errno};
}

int command_status(const Error& error) {
  return error.kind == Kind::not_found ? 127 : 126;
}

std::string to_line(const Error& error) {
  std::string line;
  for (auto level = error.context.rbegin(); level != error.context.rend(); ++level) {
    line += *level;
    line += ": ";
  }
  line += error.what;
  if (error.sys_errno != 0) {
    line += ": ";
    line += std::strerror(error.sys_errno);
  }
  if (!error.hint.empty()) {
    line += "; try: ";
    line += error.hint;
  }
  return escape_controls(line);
}

}  // namespace berth
