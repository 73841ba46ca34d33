"""Pictures of furniture: a canvas in centimetres, rooms to stand in, and one drawing for each kind of piece."""
