1 printf 'architecture = "amd64"\n[cpu]\nmicroarchitecture = "skylake-avx51"\n' >n.toml; berth node show --node n.toml
