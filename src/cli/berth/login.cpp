// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"

namespace berth::cli {
namespace {

struct LoginOptions {
  std::optional<std::string> username;
  std::optional<std::string> password;
  bool password_stdin = false;
  image::RegistryAccess access;
};

FlagTable login_flags(LoginOptions& o) {
  FlagTable table{
      {"username", 'u', "NAME", "Log in as NAME", &o.username},
      {"password", 'p', "PASSWORD", "Visible to all users of the machine: use --password-stdin",
       &o.password},
      {"password-stdin", 0, "", "Read the password from stdin", &o.password_stdin},
  };
  add_registry_flags(table, o.access);
  return table;
}

/// A password on a pipe ends with the newline that echo(1) adds.
std::string without_newline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

Result<std::string> password(Session& session, const LoginOptions& o) {
  if (o.password) {
    session.report.warn(
        "--password: every user of the machine can read the command line; try: --password-stdin");
    return *o.password;
  }
  if (o.password_stdin) return without_newline(TRY(session.terminal.read_input()));
  if (!session.terminal.input_is_terminal()) {
    return make_error(Kind::usage, "no terminal to ask for the password",
                      "berth login --username NAME --password-stdin");
  }
  return session.terminal.ask_secret("Password: ");
}

Result<std::string> username(Session& session, const LoginOptions& o) {
  if (o.username) return *o.username;
  if (o.password_stdin || !session.terminal.input_is_terminal()) {
    return make_error(Kind::usage, "no terminal to ask for the user's name",
                      "berth login --username NAME --password-stdin");
  }
  return session.terminal.ask("Username: ");
}

Result<int> run_login(Session& session, const LoginOptions& o, Arguments arguments) {
  if (o.password && o.password_stdin) {
    return make_error(Kind::usage, "'--password' and '--password-stdin' cannot be used together");
  }
  image::LoginRequest request;
  request.registry = arguments.empty() ? "" : arguments[0];
  request.username = TRY(username(session, o));
  request.password = TRY(password(session, o));
  request.access = o.access;
  if (request.username.empty()) return make_error(Kind::usage, "the user's name is empty");
  if (request.password.empty()) return make_error(Kind::usage, "the password is empty");
  image::TransferResult result =
      TRY(transfer_shown(session, std::move(request), Stream::err, Direction::pull, false));
  print(session, result.status + "\n");
  return 0;
}

}  // namespace

const Verb login_verb{
    .text = {.name = "login",
             .arguments = "[REGISTRY]",
             .summary = "Log in to a registry",
             .example = "berth login --username me --password-stdin registry.example.org <token"},
    .arity = {0, 1},
    .store = Store::none,
    .command = [] { return make_command(login_flags, run_login); },
};

}  // namespace berth::cli
