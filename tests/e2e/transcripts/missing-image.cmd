125 berth run --rm
