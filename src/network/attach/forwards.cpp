// SPDX-License-Identifier: Apache-2.0
#include "network/attach/forwards.hpp"

#include <algorithm>

#include "json/fields.hpp"
#include "network/attach/helpers.hpp"

namespace berth::network {
namespace {

/// One entry of list_hostfwd. slirp4netns(1) "API SOCKET"
struct Forward {
  int64_t id = 0;
  std::string proto;
  std::string host_addr;
  uint16_t host_port = 0;
  uint16_t guest_port = 0;
};
void fields(auto& v, Forward& f) {
  v.required("id", f.id);
  v.required("proto", f.proto);
  v.required("host_addr", f.host_addr);
  v.required("host_port", f.host_port);
  v.required("guest_port", f.guest_port);
}
struct ForwardList {
  std::vector<Forward> entries;
};
void fields(auto& v, ForwardList& l) {
  v.optional("entries", l.entries);
}
/// slirp4netns 1.2 answers with the bare list; according to its manual it is in "return".
struct ListAnswer {
  ForwardList wrapped;
  std::vector<Forward> entries;
};
void fields(auto& v, ListAnswer& a) {
  v.optional("return", a.wrapped);
  v.optional("entries", a.entries);
}

struct ForwardId {
  int64_t id = 0;
};
void fields(auto& v, ForwardId& i) {
  v.required("id", i.id);
}
struct RemoveCall {
  std::string execute = "remove_hostfwd";
  ForwardId arguments;
};
void fields(auto& v, RemoveCall& c) {
  v.required("execute", c.execute);
  v.required("arguments", c.arguments);
}

bool is_same(const Forward& there, const Published& wanted) {
  return there.proto == wanted.protocol && there.host_addr == wanted.host_address &&
         there.host_port == wanted.host_port && there.guest_port == wanted.inner_port;
}

}  // namespace

Result<void> forward_by_slirp(const std::string& socket_path,
                              const std::vector<Published>& wanted) {
  std::string answer = TRY(ask_slirp(socket_path, R"({"execute": "list_hostfwd"})"));
  ListAnswer list = TRY(json::read<ListAnswer>(answer, "the answer of slirp4netns"));
  std::vector<Forward> there = std::move(list.entries);
  there.insert(there.end(), list.wrapped.entries.begin(), list.wrapped.entries.end());
  for (const Forward& one : there) {
    bool stays =
        std::ranges::any_of(wanted, [&](const Published& port) { return is_same(one, port); });
    if (!stays) TRY(ask_slirp(socket_path, json::write(RemoveCall{.arguments = {one.id}})));
  }
  Result<void> all;
  for (const Published& port : wanted) {
    bool is_there =
        std::ranges::any_of(there, [&](const Forward& one) { return is_same(one, port); });
    if (is_there) continue;
    auto done = publish_by_slirp(socket_path, port, port.inner_port);
    if (!done.ok() && all.ok()) all = std::move(done);
  }
  return all;
}

}  // namespace berth::network
