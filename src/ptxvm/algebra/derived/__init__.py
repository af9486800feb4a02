"""Operations written once over the primitives of an algebra; every engine gives the same bits."""
