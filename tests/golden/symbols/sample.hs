-- 星 ⭐
module Sky.Star where

import Data.List (sort)

-- | How bright.
brightness :: Star -> Int
brightness (Star 0) = 1
brightness (Star n) = double n
  where
    double x = x * 2

data Star = Star Int | Sun
  deriving (Show)

newtype Name = Name String

type Stars = [Star]

-- | Shines.
class Shines a where
  shine :: a -> Int
  shine _ = 1

instance Shines Star where
  shine = brightness

(<+>) :: Star -> Star -> Star
a <+> _ = a

sun = Sun
