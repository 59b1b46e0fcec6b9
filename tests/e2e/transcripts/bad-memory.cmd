125 berth run --memory lots debian
