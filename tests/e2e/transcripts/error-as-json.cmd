125 berth --log-format json run --nmae debian
