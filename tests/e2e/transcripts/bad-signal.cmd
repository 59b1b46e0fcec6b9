125 berth kill --signal NOPE web
