// SPDX-License-Identifier: Apache-2.0
#include "image/reference.hpp"

#include <gtest/gtest.h>

namespace berth::image {
namespace {

const std::string kHex(64, 'a');

std::string canonical(std::string_view text) {
  auto reference = Reference::parse(text);
  return reference.ok() ? reference->canonical() : to_line(reference.error());
}
std::string familiar(std::string_view text) {
  auto reference = Reference::parse(text);
  return reference.ok() ? reference->familiar() : to_line(reference.error());
}

TEST(Reference, means_what_it_means_in_docker) {
  EXPECT_EQ(canonical("ubuntu"), "docker.io/library/ubuntu:latest");
  EXPECT_EQ(canonical("ubuntu:24.04"), "docker.io/library/ubuntu:24.04");
  EXPECT_EQ(canonical("me/tool"), "docker.io/me/tool:latest");
  EXPECT_EQ(canonical("library/ubuntu"), "docker.io/library/ubuntu:latest");
  EXPECT_EQ(canonical("docker.io/ubuntu"), "docker.io/library/ubuntu:latest");
  EXPECT_EQ(canonical("index.docker.io/ubuntu"), "docker.io/library/ubuntu:latest");
  EXPECT_EQ(canonical("localhost/x"), "localhost/x:latest");
  EXPECT_EQ(canonical("localhost:5000/a/b:t"), "localhost:5000/a/b:t");
  EXPECT_EQ(canonical("[::1]:5000/a"), "[::1]:5000/a:latest");
  EXPECT_EQ(canonical("quay.io/a/b__c/d-e--f.g"), "quay.io/a/b__c/d-e--f.g:latest");
  EXPECT_EQ(canonical("foo/bar"), "docker.io/foo/bar:latest");
  EXPECT_EQ(canonical("LOCAL/bar"), "LOCAL/bar:latest");
}

TEST(Reference, a_digest_wins_over_a_tag) {
  EXPECT_EQ(canonical("ubuntu@sha256:" + kHex), "docker.io/library/ubuntu@sha256:" + kHex);
  EXPECT_EQ(canonical("ubuntu:1@sha256:" + kHex), "docker.io/library/ubuntu@sha256:" + kHex);
}

TEST(Reference, a_place_is_one_however_its_registry_is_spelled) {
  for (const char* text :
       {"busybox", "docker.io/library/busybox:1", "Docker.IO/library/busybox",
        "index.docker.io/library/busybox", "REGISTRY-1.docker.io:443/library/busybox"}) {
    EXPECT_EQ(Reference::parse(text)->place(), "docker.io/library/busybox") << text;
  }
  EXPECT_EQ(Reference::parse("Registry.Example:443/a/b:c")->place(), "registry.example/a/b");
  EXPECT_EQ(Reference::parse("registry.example:5000/a")->place(), "registry.example:5000/a");
}

TEST(Reference, familiar_names_are_read_back_as_the_same_name) {
  for (std::string text : {"ubuntu:latest", "me/tool:1", "localhost:5000/x:latest", "library/a/b:1",
                           "quay.io/library/x:2"}) {
    EXPECT_EQ(familiar(text), text);
  }
  EXPECT_EQ(familiar("docker.io/library/ubuntu"), "ubuntu:latest");
}

TEST(Reference, a_familiar_name_leads_to_no_other_registry) {
  const std::string digits(64, 'a');
  for (std::string text : {"docker.io/quay.io/team/nginx", "docker.io/localhost/x",
                           "docker.io/library/a/b", "docker.io/a/b", "docker.io/library/a"}) {
    Result<Reference> first = Reference::parse(text);
    ASSERT_TRUE(first.ok()) << text;
    Result<Reference> again = Reference::parse(first->familiar_name());
    ASSERT_TRUE(again.ok()) << first->familiar_name();
    EXPECT_EQ(again->canonical(), first->canonical());
  }
  EXPECT_EQ(Reference::parse("docker.io/quay.io/x")->familiar(), "docker.io/quay.io/x:latest");
  EXPECT_EQ(Reference::parse("docker.io/library/" + digits)->familiar_name(), "library/" + digits);
}

TEST(Reference, refuses_with_the_reason) {
  auto line = [](std::string_view text) { return canonical(text); };
  EXPECT_EQ(line(""), "read image name '': it is empty");
  EXPECT_EQ(line("Ubuntu"), "read image name 'Ubuntu': repository name must be lower case");
  EXPECT_EQ(line(kHex),
            "read image name '" + kHex + "': 64 hexadecimal digits are an image id, not a name");
  std::string grammar =
      "': a repository is made of lower-case letters and digits, joined by '.', '_', '__', '-' or "
      "'/'";
  for (std::string bad : {"a//b", "/a", "a/", "-a", "a..b", "a___b", "a b", "a/../b", "..", "a@"}) {
    std::string got = line(bad);
    if (bad == "a@") {
      EXPECT_EQ(got,
                "read image name 'a@': after '@' comes a digest: 'sha256:' and 64 hexadecimal "
                "digits");
    } else if (bad == "..") {
      EXPECT_EQ(got, "read image name '..'" + grammar.substr(1));
    } else {
      EXPECT_EQ(got, "read image name '" + bad + grammar) << bad;
    }
  }
  EXPECT_EQ(line("a:" + std::string(129, 't')).find("read image name"), 0u);
  EXPECT_NE(line("a:" + std::string(129, 't')).find("a tag has at most 128"), std::string::npos);
  EXPECT_NE(line("a:").find("a tag has at most 128"), std::string::npos);
  EXPECT_NE(line(std::string(300, 'a')).find("longer than 255"), std::string::npos);
  EXPECT_NE(line("a.b:99999/x").find("'a.b:99999' is not a registry's host and port"),
            std::string::npos);
  EXPECT_EQ(line("a\x1b[31m/b").find('\x1b'), std::string::npos);
}

TEST(SearchTerm, names_a_registry_and_a_text) {
  auto term = [](std::string_view text) {
    Result<SearchTerm> read = parse_search_term(text);
    return read.ok() ? read->registry + " | " + read->text : to_line(read.error());
  };
  EXPECT_EQ(term("cuda"), "docker.io | cuda");
  EXPECT_EQ(term("me/cuda"), "docker.io | me/cuda");
  EXPECT_EQ(term("deep learning"), "docker.io | deep learning");
  EXPECT_EQ(term("library/debian"), "docker.io | debian");
  EXPECT_EQ(term("index.docker.io/library/debian"), "docker.io | debian");
  EXPECT_EQ(term("localhost:5000/"), "localhost:5000 | ");
  EXPECT_EQ(term("localhost/library/x"), "localhost | library/x");
  EXPECT_EQ(term("docker://quay.io/cuda"), "quay.io | cuda");
  EXPECT_EQ(term("nvcr.io#nvidia/cuda"), "nvcr.io | nvidia/cuda");
  EXPECT_EQ(term("c#"), "docker.io | c#");
  EXPECT_EQ(term("localhost/c#"), "localhost | c#");
  EXPECT_EQ(term("NVIDIA/cuda"), "docker.io | NVIDIA/cuda");
  EXPECT_EQ(term("TCP/IP"), "docker.io | TCP/IP");
  EXPECT_EQ(term("C++/x"), "docker.io | C++/x");
  EXPECT_EQ(term("a.b c/d"), "docker.io | a.b c/d");
  EXPECT_EQ(term("nginx:12"), "docker.io | nginx:12");
  EXPECT_EQ(term("localhost:5000"),
            "read 'localhost:5000': it names a registry and no text; try: localhost:5000/TEXT, or "
            "localhost:5000/ for all");
  EXPECT_EQ(term(""), "read '': there is no text to look for");
  EXPECT_EQ(term("library/"), "read 'library/': there is no text to look for");
  EXPECT_EQ(term("http://a/b").find("read 'http://a/b': it is an address"), 0u);
  EXPECT_NE(term("a_b:1/x").find("'a_b:1' is not a registry's host and port"), std::string::npos);
  EXPECT_NE(term(std::string_view("a\0b", 3)).find("control characters"), std::string::npos);
}

}  // namespace
}  // namespace berth::image
