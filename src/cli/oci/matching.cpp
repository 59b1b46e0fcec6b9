// SPDX-License-Identifier: Apache-2.0
#include "cli/oci/matching.hpp"

#include <regex.h>

#include <array>

#include "base/text.hpp"

namespace berth::cli::oci {

Result<std::vector<std::string>> matching_ids(const runtime::Store& store,
                                              const std::string& pattern) {
  regex_t expression;
  int status = ::regcomp(&expression, pattern.c_str(), REG_EXTENDED | REG_NOSUB);
  if (status != 0) {
    std::array<char, 128> reason{};
    ::regerror(status, &expression, reason.data(), reason.size());
    return make_error(Kind::usage, "--regex: " + quote(pattern) +
                                       " is not a regular expression: " + reason.data());
  }
  std::unique_ptr<regex_t, void (*)(regex_t*)> owner(&expression, ::regfree);
  std::vector<std::string> ids;
  for (std::string& id : TRY(store.list())) {
    if (::regexec(&expression, id.c_str(), 0, nullptr, 0) == 0) ids.push_back(std::move(id));
  }
  return ids;
}

Result<int> for_each_id(Session& session, const std::vector<std::string>& ids,
                        const std::function<Result<void>(const std::string& id)>& act) {
  int status = 0;
  for (const std::string& id : ids) {
    auto done = act(id);
    if (done.ok()) continue;
    session.log.warn(to_line(done.error()));
    status = 1;
  }
  return status;
}

}  // namespace berth::cli::oci
