0 berth images --format json
