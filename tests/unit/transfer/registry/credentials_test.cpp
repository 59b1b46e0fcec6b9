// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/credentials.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace berth::transfer {
namespace {

class Warnings final : public Log {
 public:
  void warn(const std::string& text) override { texts.push_back(text); }
  void debug(const std::string&) override {}
  std::vector<std::string> texts;
};

class Credentials : public ::testing::Test {
 protected:
  Credentials() {
    char name[] = "/tmp/berth-credentials-XXXXXX";
    directory_ = ::mkdtemp(name);
    file_ = directory_ / "config.json";
  }
  ~Credentials() override { std::filesystem::remove_all(directory_); }

  void write(const std::filesystem::path& path, const std::string& text, int mode = 0600) {
    std::ofstream(path) << text;
    ::chmod(path.c_str(), static_cast<mode_t>(mode));
  }
  std::string content() {
    std::stringstream text;
    text << std::ifstream(file_).rdbuf();
    return text.str();
  }
  /// "user:password", "<token>:…" or "" for none.
  std::string found(const std::string& registry, const std::string& repository = "a/b") {
    auto credential = find_credential({file_}, registry, repository, log_);
    if (!credential.ok()) return to_line(credential.error());
    if (!*credential) return "";
    const Credential& c = **credential;
    if (!c.identity_token.empty()) return "<token>:" + c.identity_token;
    return c.username + ":" + c.password;
  }

  std::filesystem::path directory_;
  std::filesystem::path file_;
  Warnings log_;
};

TEST_F(Credentials, finds_what_docker_and_podman_wrote) {
  write(file_, R"({"auths": {
    "https://index.docker.io/v1/": {"auth": "aHViOnB3"},
    "localhost:5000": {"auth": "bG9jYWw6YTpi"},
    "https://old.example/v2/": {"auth": "b2xkOnB3"},
    "quay.example": {"auth": "cXVheTpwdw=="},
    "quay.example/team": {"auth": "dGVhbTpwdw=="},
    "token.example": {"auth": "dTpw", "identitytoken": "refresh"},
    "empty.example": {}}})");
  EXPECT_EQ(found("docker.io"), "hub:pw");
  EXPECT_EQ(found("localhost:5000"), "local:a:b");
  EXPECT_EQ(found("old.example"), "old:pw");
  EXPECT_EQ(found("quay.example", "other/x"), "quay:pw");
  EXPECT_EQ(found("quay.example", "team/x"), "team:pw");
  EXPECT_EQ(found("quay.example", "teammate"), "quay:pw");
  EXPECT_EQ(found("token.example"), "<token>:refresh");
  EXPECT_EQ(found("empty.example"), "");
  EXPECT_EQ(found("localhost:5001"), "");
  EXPECT_TRUE(log_.texts.empty());
}

TEST_F(Credentials, passes_over_a_missing_file_and_warns_of_a_broken_one) {
  EXPECT_EQ(found("docker.io"), "");
  EXPECT_TRUE(log_.texts.empty());
  write(file_, "{");
  EXPECT_EQ(found("docker.io"), "");
  ASSERT_EQ(log_.texts.size(), 1u);
  EXPECT_TRUE(log_.texts[0].starts_with("cannot get credentials from '" + file_.string() + "': "));
  EXPECT_TRUE(log_.texts[0].ends_with(", ignoring"));
}

TEST_F(Credentials, keeps_what_else_the_file_says_and_gives_it_mode_0600) {
  write(file_, R"({"psFormat": "table", "auths": {"h:1": {"auth": "eDp5"}}})", 0644);
  ASSERT_TRUE(store_credential({file_}, "docker.io", {"me", "pass:word", {}}).ok());
  EXPECT_EQ(found("docker.io"), "me:pass:word");
  EXPECT_EQ(found("h:1"), "x:y");
  EXPECT_NE(content().find(R"("psFormat": "table")"), std::string::npos);
  EXPECT_NE(content().find(R"("https://index.docker.io/v1/")"), std::string::npos);
  EXPECT_EQ(content().find("pass:word"), std::string::npos);
  struct stat status {};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(Credentials, makes_the_file_and_its_directory) {
  file_ = directory_ / "new" / "dir" / "config.json";
  ASSERT_TRUE(store_credential({file_}, "h:1", {"u", "p", {}}).ok());
  EXPECT_EQ(found("h:1"), "u:p");
}

TEST_F(Credentials, replaces_the_target_of_a_link_and_not_the_link) {
  std::filesystem::path target = directory_ / "real.json";
  write(target, "{}");
  std::filesystem::create_symlink(target, file_);
  ASSERT_TRUE(store_credential({file_}, "h:1", {"u", "p", {}}).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(file_));
  EXPECT_EQ(found("h:1"), "u:p");
}

TEST_F(Credentials, erases_what_it_stored) {
  ASSERT_TRUE(store_credential({file_}, "h:1", {"u", "p", {}}).ok());
  EXPECT_TRUE(erase_credential({file_}, "h:1").value());
  EXPECT_EQ(found("h:1"), "");
  EXPECT_FALSE(erase_credential({file_}, "h:1").value());
}

TEST_F(Credentials, speaks_the_helper_protocol_on_stdin_and_stdout) {
  // Keeps one credential in a file, and writes down what was on its command line.
  write(directory_ / "docker-credential-test",
        "#!/bin/sh\ncd " + directory_.string() +
            "\necho \"$@\" >>argv\n"
            "case $1 in\n"
            "store) cat >kept;;\n"
            "get) read url; test \"$url\" = h:1 && test -f kept && cat kept && exit 0\n"
            "  echo 'credentials not found in native keychain'; exit 1;;\n"
            "erase) rm kept;;\n"
            "esac\n",
        0700);
  std::string path = std::getenv("PATH");
  ::setenv("PATH", (directory_.string() + ":" + path).c_str(), 1);
  write(file_, R"({"credHelpers": {"h:1": "test"}})");

  EXPECT_EQ(found("h:1"), "");
  Result<void> stored = store_credential({file_}, "h:1", {"u", "p:w", {}});
  ASSERT_TRUE(stored.ok()) << to_line(stored.error());
  EXPECT_EQ(found("h:1"), "u:p:w");
  EXPECT_EQ(content().find("p:w"), std::string::npos);
  EXPECT_EQ(found("h:2"), "");
  EXPECT_TRUE(erase_credential({file_}, "h:1").value());
  EXPECT_EQ(found("h:1"), "");
  EXPECT_TRUE(log_.texts.empty()) << log_.texts[0];

  std::stringstream argv;
  argv << std::ifstream(directory_ / "argv").rdbuf();
  EXPECT_EQ(argv.str(), "get\nstore\nget\nerase\nget\n");
  ::setenv("PATH", path.c_str(), 1);
}

TEST_F(Credentials, warns_of_a_helper_that_is_not_there) {
  write(file_, R"({"credsStore": "no-such-helper"})");
  EXPECT_EQ(found("h:1"), "");
  ASSERT_EQ(log_.texts.size(), 1u);
  EXPECT_EQ(log_.texts[0], "cannot get credentials from '" + file_.string() +
                               "': find 'docker-credential-no-such-helper' in PATH, ignoring");
}

}  // namespace
}  // namespace berth::transfer
