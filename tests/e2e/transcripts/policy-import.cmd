0 printf 'disable-require = true\nswarm-resource = "A,B"\nother = 1\n[nvidia-container-cli]\nload-kmods = true\n' > c.toml; berth policy import nvidia-container-runtime c.toml
