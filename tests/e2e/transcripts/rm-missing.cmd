1 berth rm nothing
