1 printf 'gpu.enviroment = "grant"\n\ngpu.files = ["x"]\n' > p.toml; berth policy check p.toml
