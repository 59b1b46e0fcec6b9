125 berth stop --time soon web
