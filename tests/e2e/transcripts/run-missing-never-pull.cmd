125 berth run --pull never nothing
