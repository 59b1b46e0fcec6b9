125 berth run -itx debian
