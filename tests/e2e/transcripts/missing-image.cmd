1 berth run --rm
