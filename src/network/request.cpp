// SPDX-License-Identifier: Apache-2.0
#include "network/request.hpp"

#include "json/fields.hpp"

namespace berth::network {
namespace {

struct Failure {
  std::string kind;
  int sys_errno = 0;
  std::string what;
  std::string hint;
  std::vector<std::string> context;
};
void fields(auto& v, Failure& f) {
  v.required("kind", f.kind);
  v.required("errno", f.sys_errno);
  v.required("what", f.what);
  v.always("hint", f.hint);
  v.always("context", f.context);
}

}  // namespace

std::string write_failure(const Error& error) {
  return json::write(Failure{std::string(kind_name(error.kind)), error.sys_errno, error.what,
                             error.hint, error.context});
}

std::optional<Error> read_failure(std::string_view text) {
  auto read = json::read<Failure>(text, "berth-network");
  if (!read.ok()) return std::nullopt;
  Error error;
  error.kind = kind_from_name(read->kind);
  error.sys_errno = read->sys_errno;
  error.what = std::move(read->what);
  error.hint = std::move(read->hint);
  error.context = std::move(read->context);
  return error;
}

}  // namespace berth::network
