125 berth run --frobnicate debian
