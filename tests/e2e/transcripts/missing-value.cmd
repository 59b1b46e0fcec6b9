125 berth run --env
