125 berth run --env-file nowhere debian
